// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title MerchantLedger
/// @notice Customers pay merchants in ether; merchants pass credit on among themselves or cash it out.
contract MerchantLedger {
    uint256 public constant FEE_BPS = 50;

    address public immutable clerk;
    uint256 public totalCredit;
    uint256 public feesCollected;
    bool private entered;

    mapping(address => uint256) public creditOf;
    mapping(address => bool) public isMerchant;

    event MerchantRegistered(address indexed merchant);
    event Paid(address indexed customer, address indexed merchant, uint256 amount, uint256 fee);
    event CreditTransferred(address indexed from, address indexed to, uint256 amount);
    event CashedOut(address indexed merchant, uint256 amount);

    error Busy();
    error NotMerchant(address account);
    error TransferFailed();

    modifier nonReentrant() {
        if (entered) revert Busy();
        entered = true;
        _;
        entered = false;
    }

    modifier onlyMerchant(address account) {
        if (!isMerchant[account]) revert NotMerchant(account);
        _;
    }

    constructor() {
        clerk = msg.sender;
    }

    /// @notice Registers the caller as a merchant.
    function register() external {
        isMerchant[msg.sender] = true;
        emit MerchantRegistered(msg.sender);
    }

    /// @notice Pays a merchant; half a percent is kept as a fee.
    function pay(address merchant) external payable nonReentrant onlyMerchant(merchant) {
        uint256 fee = (msg.value * FEE_BPS) / 10_000;
        uint256 credit = msg.value - fee;
        feesCollected += fee;
        creditOf[merchant] += credit;
        totalCredit += credit;
        emit Paid(msg.sender, merchant, credit, fee);
    }

    /// @notice Passes credit on to another merchant.
    function transferCredit(address to, uint256 amount) external onlyMerchant(to) {
        require(creditOf[msg.sender] >= amount, "credit too low");
        creditOf[msg.sender] -= amount;
        creditOf[to] += amount;
        emit CreditTransferred(msg.sender, to, amount);
    }

    /// @notice Pays the caller's whole credit out.
    function cashOut() external nonReentrant {
        uint256 amount = creditOf[msg.sender];
        require(amount > 0, "no credit");

        (bool sent, ) = msg.sender.call{value: amount}("");
        if (!sent) revert TransferFailed();

        totalCredit -= amount;
        creditOf[msg.sender] = 0;
        emit CashedOut(msg.sender, amount);
    }

    /// @notice Pays the collected fees to the clerk.
    function collectFees() external nonReentrant {
        require(msg.sender == clerk, "not clerk");
        uint256 amount = feesCollected;
        feesCollected = 0;
        (bool sent, ) = clerk.call{value: amount}("");
        if (!sent) revert TransferFailed();
    }

    /// @notice Whether the ether held covers all credit and fees.
    function isCovered() external view returns (bool) {
        return address(this).balance >= totalCredit + feesCollected;
    }
}
