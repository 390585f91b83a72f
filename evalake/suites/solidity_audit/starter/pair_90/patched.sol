// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title BandSplitter
/// @notice Splits payments between musicians by parts in ten-thousandths; credits are withdrawn later.
contract BandSplitter {
    uint256 public constant WHOLE = 10_000;
    uint256 public constant MAX_ACCOUNTS = 20;

    mapping(address => uint256) public creditOf;
    uint256 public paymentCount;
    uint256 public totalPaid;

    event Split(uint256 indexed payment, address indexed payer, uint256 amount);
    event Credited(uint256 indexed payment, address indexed account, uint256 amount);
    event Withdrawn(address indexed account, uint256 amount);

    /// @notice Splits the ether sent.
    /// @param accounts Who receives a part.
    /// @param parts Their parts in ten-thousandths, 10,000 together.
    function split(address[] calldata accounts, uint256[] calldata parts) external payable {
        require(msg.value > 0, "nothing sent");
        require(accounts.length == parts.length && accounts.length <= MAX_ACCOUNTS, "bad lists");
        uint256 payment = paymentCount++;
        totalPaid += msg.value;
        emit Split(payment, msg.sender, msg.value);
        uint256 sum = 0;
        for (uint256 i = 0; i < accounts.length; i++) {
            require(accounts[i] != address(0) && parts[i] > 0 && parts[i] <= WHOLE, "bad part");
            sum += parts[i];
            uint256 amount = (msg.value * parts[i]) / WHOLE;
            creditOf[accounts[i]] += amount;
            emit Credited(payment, accounts[i], amount);
        }
        require(sum == WHOLE, "parts do not add up");
    }

    /// @notice Pays the caller's credit.
    function withdraw() external {
        uint256 amount = creditOf[msg.sender];
        require(amount > 0, "no credit");
        creditOf[msg.sender] = 0;
        emit Withdrawn(msg.sender, amount);
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
