// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IToken {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

interface ILoanReceiver {
    /// @notice Called with the loan; it must be back, with nothing added, when the call returns.
    function onFlashLoan(address initiator, uint256 amount, bytes calldata data) external;
}
