// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title EtherAccounts
/// @notice Ether accounts with payments, standing limits and batches of calls.
contract EtherAccounts {
    struct Allowance {
        uint256 perDay;
        uint256 day;
        uint256 takenToday;
    }

    uint256 public totalBalance;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => Allowance)) public allowances;

    event Deposited(address indexed account, uint256 amount);
    event Withdrawn(address indexed account, address indexed to, uint256 amount);
    event Paid(address indexed from, address indexed to, uint256 amount);
    event AllowanceSet(address indexed from, address indexed to, uint256 perDay);

    error NothingSent();
    error BalanceTooLow(uint256 available, uint256 requested);
    error AllowanceExceeded(uint256 left, uint256 requested);
    error TransferFailed();

    /// @notice Credits the ether sent to the caller.
    function deposit() external payable {
        if (msg.value == 0) revert NothingSent();
        balanceOf[msg.sender] += msg.value;
        totalBalance += msg.value;
        emit Deposited(msg.sender, msg.value);
    }

    /// @notice Pays ether of the caller's account out.
    function withdraw(address payable to, uint256 amount) external {
        _debit(msg.sender, amount);
        totalBalance -= amount;
        emit Withdrawn(msg.sender, to, amount);
        (bool sent, ) = to.call{value: amount}("");
        if (!sent) revert TransferFailed();
    }

    /// @notice Pays from the caller's account to another account.
    function pay(address to, uint256 amount) external {
        _debit(msg.sender, amount);
        balanceOf[to] += amount;
        emit Paid(msg.sender, to, amount);
    }

    /// @notice Allows an account to collect up to an amount a day from the caller.
    function setAllowance(address to, uint256 perDay) external {
        allowances[msg.sender][to].perDay = perDay;
        emit AllowanceSet(msg.sender, to, perDay);
    }

    /// @notice Collects from an account that has given the caller an allowance.
    function collect(address from, uint256 amount) external {
        Allowance storage allowance = allowances[from][msg.sender];
        uint256 today = block.timestamp / 1 days;
        if (allowance.day != today) {
            allowance.day = today;
            allowance.takenToday = 0;
        }
        uint256 left = allowance.perDay > allowance.takenToday ? allowance.perDay - allowance.takenToday : 0;
        if (amount > left) revert AllowanceExceeded(left, amount);
        allowance.takenToday += amount;
        _debit(from, amount);
        balanceOf[msg.sender] += amount;
        emit Paid(from, msg.sender, amount);
    }

    /// @notice Makes several calls to this contract in one transaction; all succeed or none.
    /// @param calls Encoded calls, made in the name of the caller.
    /// @return results What each call returned.
    function multicall(bytes[] calldata calls) external payable returns (bytes[] memory results) {
        results = new bytes[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            (bool ok, bytes memory result) = address(this).delegatecall(calls[i]);
            if (!ok) {
                assembly {
                    revert(add(result, 32), mload(result))
                }
            }
            results[i] = result;
        }
    }

    function _debit(address account, uint256 amount) private {
        uint256 available = balanceOf[account];
        if (amount > available) revert BalanceTooLow(available, amount);
        balanceOf[account] = available - amount;
    }
}
